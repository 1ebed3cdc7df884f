-- Users by region.
SELECT region, count(DISTINCT user_id) AS users
FROM hits
GROUP BY region
ORDER BY users DESC, region LIMIT 10;
