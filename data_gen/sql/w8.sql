-- The row before.
SELECT sum(amount - l), count(l) FROM (
  SELECT amount, lag(amount) OVER (PARTITION BY visitor ORDER BY event) AS l FROM events) AS q;
