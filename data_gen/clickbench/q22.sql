-- The same, by phrase.
SELECT search_phrase, min(url), count(*) AS views
FROM hits
WHERE url LIKE '%weather%' AND search_phrase <> ''
GROUP BY search_phrase
ORDER BY views DESC, search_phrase LIMIT 10;
