SELECT s.region, r.manager, SUM(s.units) AS units, SUM(s.units * s.price) AS revenue
FROM sample_sales AS s
JOIN sample_regions AS r ON r.region = s.region
WHERE s.sold_on >= :since
GROUP BY s.region, r.manager
ORDER BY s.region
