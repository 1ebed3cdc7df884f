-- How many views.
SELECT count(*)
FROM hits;
