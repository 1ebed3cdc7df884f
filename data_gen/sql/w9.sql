-- Whole partitions, without an order.
SELECT count(*) FROM (SELECT amount, avg(amount) OVER (PARTITION BY session) AS a FROM events) AS q WHERE amount > a;
