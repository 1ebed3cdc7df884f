-- Different users.
SELECT count(DISTINCT user_id)
FROM hits;
