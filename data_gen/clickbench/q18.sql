-- How many such groups.
SELECT count(*), max(views) FROM (SELECT user_id, search_phrase, count(*) AS views FROM hits GROUP BY user_id,
  search_phrase) groups;
