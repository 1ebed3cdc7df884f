-- Whole rows in the order of time.
SELECT *
FROM hits
WHERE url LIKE '%weather%'
ORDER BY event_time, hit_id LIMIT 10;
