-- Users and phrases by views.
SELECT user_id, search_phrase, count(*) AS views
FROM hits
GROUP BY user_id, search_phrase
ORDER BY views DESC, user_id, search_phrase LIMIT 10;
