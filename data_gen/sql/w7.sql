-- The least value of a sliding frame.
SELECT sum(s), max(s) FROM (
  SELECT min(amount) OVER (ORDER BY event ROWS BETWEEN 99 PRECEDING AND 100 FOLLOWING) AS s FROM events) AS q;
