SELECT kind, count(DISTINCT visitor) AS n FROM events GROUP BY kind ORDER BY n DESC, kind LIMIT 10;
