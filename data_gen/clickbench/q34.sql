-- Addresses by views.
SELECT url, count(*) AS views
FROM hits
GROUP BY url
ORDER BY views DESC, url LIMIT 10;
