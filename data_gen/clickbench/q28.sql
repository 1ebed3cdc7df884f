-- Sites with long addresses.
SELECT site_id, avg(length(url)) AS letters, count(*) AS views
FROM hits
WHERE url <> ''
GROUP BY site_id
HAVING count(*) > 2000
ORDER BY letters DESC, site_id LIMIT 25;
