-- Neighbours of addresses.
SELECT client_ip, client_ip - 1, client_ip - 2, client_ip - 3, count(*) AS views
FROM hits
GROUP BY client_ip, client_ip - 1, client_ip - 2, client_ip - 3
ORDER BY views DESC, client_ip LIMIT 10;
