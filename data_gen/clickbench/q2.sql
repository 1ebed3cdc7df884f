-- How many came by an advertisement.
SELECT count(*)
FROM hits
WHERE ad_engine <> 0;
