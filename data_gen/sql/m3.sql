SELECT sum(m) FROM (SELECT visitor, median(amount::double precision) AS m FROM events GROUP BY visitor) AS q;
