SELECT split_part(url, '/', 3) AS page, count(*) AS n FROM events GROUP BY page ORDER BY n DESC, page LIMIT 10;
