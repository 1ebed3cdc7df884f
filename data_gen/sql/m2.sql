SELECT kind, median(score) FROM events GROUP BY kind ORDER BY kind LIMIT 10;
