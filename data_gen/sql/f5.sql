SELECT sum(length(upper(url))), max(replace(url, 'host', 'server')) FROM events;
