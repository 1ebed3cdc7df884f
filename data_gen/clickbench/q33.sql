-- Sessions.
SELECT session_id, client_ip, count(*) AS views, sum(is_refresh), avg(screen_width)
FROM hits
GROUP BY session_id, client_ip
ORDER BY views DESC, session_id, client_ip LIMIT 10;
