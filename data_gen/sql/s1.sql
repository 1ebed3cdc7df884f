SELECT count(*) FROM (
  SELECT session, kind FROM events WHERE event % 2 = 0
  UNION
  SELECT session, kind FROM events WHERE event % 3 = 0) AS q;
