-- Phrases in the order of time.
SELECT search_phrase
FROM hits
WHERE search_phrase <> ''
ORDER BY event_time, hit_id LIMIT 10;
