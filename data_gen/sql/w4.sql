-- A running sum.
SELECT sum(s), max(s) FROM (SELECT sum(amount) OVER (ORDER BY event) AS s FROM events) AS q;
