-- Phrases of engines.
SELECT search_engine, search_phrase, count(*) AS views
FROM hits
WHERE search_phrase <> ''
GROUP BY search_engine, search_phrase
ORDER BY views DESC, search_engine, search_phrase LIMIT 10;
