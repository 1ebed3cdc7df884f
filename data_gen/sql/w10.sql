-- Partitions of one row.
SELECT sum(r), sum(s) FROM (
  SELECT row_number() OVER p AS r, sum(amount) OVER p AS s FROM events WINDOW p AS (PARTITION BY visit ORDER BY event)) AS q;
