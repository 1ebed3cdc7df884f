-- Visitors from engines.
SELECT search_engine, client_ip, count(*) AS views, sum(is_refresh), avg(screen_width)
FROM hits
WHERE search_phrase <> ''
GROUP BY search_engine, client_ip
ORDER BY views DESC, search_engine, client_ip LIMIT 10;
