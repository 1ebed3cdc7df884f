-- A sum over a sliding frame, one partition.
SELECT sum(s), max(s) FROM (
  SELECT sum(amount) OVER (ORDER BY event ROWS BETWEEN 99 PRECEDING AND CURRENT ROW) AS s FROM events) AS q;
