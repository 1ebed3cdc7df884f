-- Views by the minute of two days.
SELECT date_trunc('minute', event_time) AS minute, count(*) AS views
FROM hits
WHERE site_id = 3 AND event_date BETWEEN DATE '2025-07-14' AND DATE '2025-07-15' AND is_refresh = 0 AND
  dont_count = 0
GROUP BY minute
ORDER BY minute LIMIT 10 OFFSET 100;
