SELECT max(regexp_replace(url, '[0-9]+@', '#')) FROM events;
