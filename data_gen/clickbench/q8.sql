-- Advertisers by views.
SELECT ad_engine, count(*) AS views
FROM hits
WHERE ad_engine <> 0
GROUP BY ad_engine
ORDER BY views DESC, ad_engine;
