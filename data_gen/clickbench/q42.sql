-- Windows of a site.
SELECT window_width, window_height, count(*) AS views
FROM hits
WHERE site_id = 3 AND event_date BETWEEN DATE '2025-07-01' AND DATE '2025-07-31' AND is_refresh = 0 AND
  dont_count = 0
GROUP BY window_width, window_height
ORDER BY views DESC, window_width, window_height LIMIT 10 OFFSET 50;
