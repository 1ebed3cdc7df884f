-- Later links of a site.
SELECT url, count(*) AS views
FROM hits
WHERE site_id = 1 AND event_date BETWEEN DATE '2025-07-01' AND DATE '2025-07-31' AND is_refresh = 0 AND
  is_link <> 0 AND is_download = 0
GROUP BY url
ORDER BY views DESC, url LIMIT 10 OFFSET 100;
