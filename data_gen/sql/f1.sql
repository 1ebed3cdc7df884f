SELECT count(*) FROM events WHERE regexp_matches(url, 'user[0-9]*7@host[1-4]');
