-- A word in the title and not in the address.
SELECT search_phrase, min(url), min(title), count(*) AS views, count(DISTINCT user_id)
FROM hits
WHERE title LIKE '%погода%' AND url NOT LIKE '%.com/%' AND search_phrase <> ''
GROUP BY search_phrase
ORDER BY views DESC, search_phrase LIMIT 10;
