-- An average of large numbers.
SELECT avg(user_id)
FROM hits;
