SELECT median(score) FROM events;
