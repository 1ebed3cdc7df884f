-- Ranks, partitions of 1,000 rows.
SELECT sum(r), count(*) FROM (SELECT row_number() OVER (PARTITION BY session ORDER BY event) AS r FROM events) AS q;
