-- Titles of a site in a month.
SELECT title, count(*) AS views
FROM hits
WHERE site_id = 3 AND event_date BETWEEN DATE '2025-07-01' AND DATE '2025-07-31' AND dont_count = 0 AND
  is_refresh = 0 AND title <> ''
GROUP BY title
ORDER BY views DESC, title LIMIT 10;
