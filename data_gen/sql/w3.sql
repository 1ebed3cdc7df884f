-- Ranks, partitions of 1,000,000 rows.
SELECT sum(d), sum(n) FROM (
  SELECT dense_rank() OVER p AS d, ntile(100) OVER p AS n FROM events WINDOW p AS (PARTITION BY shop ORDER BY amount, event)) AS q;
