-- A word in the address.
SELECT count(*)
FROM hits
WHERE url LIKE '%weather%';
