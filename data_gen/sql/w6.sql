-- A sum over a sliding frame, partitions of 1,000 rows.
SELECT sum(s), max(s) FROM (
  SELECT sum(amount) OVER (PARTITION BY session ORDER BY event ROWS BETWEEN 99 PRECEDING AND CURRENT ROW) AS s
  FROM events) AS q;
