SELECT product, SUM(units) AS units
FROM sample_sales
WHERE region = :region
  AND returned_on IS NULL
GROUP BY product
ORDER BY product
