SELECT count(*) FROM (
  SELECT session, kind FROM events WHERE event % 2 = 0
  INTERSECT
  SELECT session, kind FROM events WHERE event % 2 = 1) AS q;
