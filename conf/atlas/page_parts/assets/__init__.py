"""What a page loads.

``style_sheet``    one style sheet instead of many
``scripts``        the scripts that the page uses, and no other
``small_scripts``  the site's own without comments
"""
