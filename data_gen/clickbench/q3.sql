-- Three folds of narrow columns.
SELECT sum(ad_engine), count(*), avg(screen_width)
FROM hits;
