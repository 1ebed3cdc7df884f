-- Ranks, one partition.
SELECT sum(r), max(r) FROM (SELECT rank() OVER (ORDER BY amount) AS r FROM events) AS q;
