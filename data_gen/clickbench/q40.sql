-- Ways to a page.
SELECT traffic_source, search_engine, ad_engine, CASE WHEN search_engine = 0 AND ad_engine = 0 THEN referer
  ELSE '' END AS source, url AS destination, count(*) AS views
FROM hits
WHERE site_id = 3 AND event_date BETWEEN DATE '2025-07-01' AND DATE '2025-07-31' AND is_refresh = 0
GROUP BY traffic_source, search_engine, ad_engine, source, destination
ORDER BY views DESC, traffic_source, search_engine, ad_engine, source, destination LIMIT 10 OFFSET 100;
