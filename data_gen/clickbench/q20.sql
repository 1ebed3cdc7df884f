-- One user.
SELECT hit_id
FROM hits
WHERE user_id = 6556722773649033215
ORDER BY hit_id;
