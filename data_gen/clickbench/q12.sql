-- The same, and maker.
SELECT phone_maker, phone_model, count(DISTINCT user_id) AS users
FROM hits
WHERE phone_model <> ''
GROUP BY phone_maker, phone_model
ORDER BY users DESC, phone_maker, phone_model LIMIT 10;
