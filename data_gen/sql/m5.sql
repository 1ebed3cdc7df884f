SELECT sum(n) FROM (SELECT session, count(DISTINCT day) AS n FROM events GROUP BY session) AS q;
