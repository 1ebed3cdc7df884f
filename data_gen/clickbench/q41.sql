-- Hashes of pages by day.
SELECT url_hash, event_date, count(*) AS views
FROM hits
WHERE site_id = 3 AND event_date BETWEEN DATE '2025-07-01' AND DATE '2025-07-31' AND is_refresh = 0 AND
  traffic_source IN (-1, 2)
GROUP BY url_hash, event_date
ORDER BY views DESC, url_hash, event_date LIMIT 10 OFFSET 20;
