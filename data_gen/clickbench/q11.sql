-- Users by model of phone.
SELECT phone_model, count(DISTINCT user_id) AS users
FROM hits
WHERE phone_model <> ''
GROUP BY phone_model
ORDER BY users DESC, phone_model LIMIT 10;
