-- Four folds by region.
SELECT region, sum(ad_engine), count(*) AS views, avg(screen_width), count(DISTINCT user_id)
FROM hits
GROUP BY region
ORDER BY views DESC, region LIMIT 10;
