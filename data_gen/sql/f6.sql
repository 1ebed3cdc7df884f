SELECT substr(url, 1, 5) AS head, count(*) FROM events WHERE strpos(url, 'host7') > 0 AND url LIKE '%page/1%' GROUP BY head ORDER BY head;
